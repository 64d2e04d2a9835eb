#!/bin/sh
# One task of a batch system: processes its share of the files of a list, one after the other.
# Usage: process-task.sh LIST FOLDER [OPTIONS OF hltnode process]
#
# LIST has the path of an event file on each line; FOLDER gets NUMBER-NAME.mdf (accepted events) and NUMBER-NAME.json for
# each. A file is done when its .json is there, so a task that starts again continues. Environment: HLTNODE_TASK (or
# SLURM_ARRAY_TASK_ID) from 0, HLTNODE_TASKS, HLTNODE_THREADS (or SLURM_CPUS_PER_TASK), HLTNODE (default: hltnode).
#
# Exit code: 0; 1 if a file could not be processed. Damaged events are left out, and named in the log.
set -eu
list=$1 folder=$2
shift 2
task=${SLURM_ARRAY_TASK_ID:-${HLTNODE_TASK:?expected HLTNODE_TASK or SLURM_ARRAY_TASK_ID}}
tasks=${HLTNODE_TASKS:?expected HLTNODE_TASKS, the number of tasks}
threads=${HLTNODE_THREADS:-${SLURM_CPUS_PER_TASK:-1}}
program=${HLTNODE:-hltnode}
# Otherwise a task would have no files, and end as if all were done.
if ! [ "$task" -ge 0 ] || ! [ "$task" -lt "$tasks" ]; then
    echo "task $task of $tasks: expected a number from 0, below the number of tasks" >&2
    exit 2
fi

# A file with the same name in another folder has another number.
mine=$(awk -v task="$task" -v tasks="$tasks" 'NF { if (n % tasks == task) printf "%06d\t%s\n", n, $0; n++ }' "$list")
[ -n "$mine" ] || exit 0
failed=0 pid='' part=''
work=$(mktemp -d "${TMPDIR:-/tmp}/hltnode-task-XXXXXX")
trap 'rm -rf "$work" ${part:+"$part"}' EXIT
# A batch system that takes the machine back sends SIGTERM first: the file in work is processed again.
trap '[ -z "$pid" ] || { kill "$pid" 2>/dev/null && wait "$pid"; } || true; exit 143' TERM INT HUP
tab=$(printf '\t')
while IFS=$tab read -r number file; do
    name=$number-$(basename "$file")
    [ ! -e "$folder/$name.json" ] || continue
    rm -f "$work/result.mdf" "$work/result.json"
    status=0
    $program process "$file" "$@" --threads "$threads" --accepted "$work/result.mdf" --json "$work/result.json" &
    pid=$!
    wait "$pid" || status=$?
    pid=''
    if [ "$status" -gt 1 ] || [ ! -e "$work/result.json" ]; then
        echo "$file: not processed, exit code $status" >&2
        failed=1
        continue
    fi
    [ "$status" -eq 0 ] || echo "$file: damaged events are left out" >&2
    # The folder may be another file system: a name appears with all its bytes, and that of the .json last.
    for suffix in mdf json; do
        part=$folder/$name.$suffix.$task.part
        cp "$work/result.$suffix" "$part"
        mv "$part" "$folder/$name.$suffix"
    done
done <<END
$mine
END
exit "$failed"
