#!/usr/bin/env bash
# Checks the manifests of this folder without a cluster: against the types of
# Kubernetes' API, against each other, and against weir's own flags.
set -euo pipefail
cd "$(dirname "$0")/check"
go vet ./...
go test ./...
