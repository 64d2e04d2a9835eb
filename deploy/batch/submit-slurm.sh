#!/bin/sh
# Submits a job array that processes the files of a list: submit-slurm.sh LIST FOLDER [OPTIONS OF hltnode process]
#
# Environment: TASKS (default: one for each file, at most 1000), RUNNING (tasks at a time, default 100), CPUS (4), MEMORY
# of a CPU (2G), TIME (4:00:00), SBATCH_ARGUMENTS (others, such as --partition=gpu --gpus=1). Submitted again, it
# processes what is missing. Folder and files are on a file system that the machines share.
set -eu
[ $# -ge 2 ] || { sed -n '2,7s/^# //p' "$0" >&2; exit 2; }
list=$(realpath "$1") folder=$2
shift 2
files=$(grep -c '[^[:space:]]' "$list") || { echo "$list: expected the path of an event file on each line" >&2; exit 2; }
tasks=${TASKS:-$([ "$files" -lt 1000 ] && echo "$files" || echo 1000)}
mkdir -p "$folder/logs"
folder=$(realpath "$folder")
# shellcheck disable=SC2086 # several arguments
exec sbatch --job-name=hltnode-process --array="0-$((tasks - 1))%${RUNNING:-100}" --cpus-per-task="${CPUS:-4}" \
    --mem-per-cpu="${MEMORY:-2G}" --time="${TIME:-4:00:00}" --requeue --signal=B:TERM@60 --open-mode=append \
    --output="$folder/logs/%a.log" --export="ALL,HLTNODE_TASKS=$tasks" ${SBATCH_ARGUMENTS:-} \
    "$(dirname "$(realpath "$0")")/process-task.sh" "$list" "$folder" "$@"
