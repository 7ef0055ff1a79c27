#!/bin/sh
# Measures with three load generators in the namespace of the current context, and prints their report. The script
# creates a password for their Redis, unless the file password exists. It deletes the Job of the previous run, because
# Kubernetes cannot change a Job. TIMEOUT is the longest time to wait for the Job, in seconds (900).
set -eu
cd "$(dirname "$0")"
say() { echo "run.sh: $*" >&2; }

[ -s password ] || (umask 077 && openssl rand -hex 32 | tr -d '\n' >password)
kubectl delete job lockbench --ignore-not-found >&2
kubectl apply -k . >&2

say "the job has begun"
ended=
for _ in $(seq "${TIMEOUT:-900}"); do
	ended=$(kubectl get job lockbench -o 'jsonpath={range .status.conditions[?(@.status=="True")]}{.type} {end}')
	case $ended in *Complete* | *Failed*) break ;; esac
	sleep 1
done
kubectl logs -l batch.kubernetes.io/job-completion-index=0 --tail -1
case $ended in
*Complete*) ;;
*Failed*) say "the job failed; kubectl describe job lockbench shows why" && exit 1 ;;
*) say "the job has not ended within ${TIMEOUT:-900} s; kubectl describe job lockbench shows why" && exit 1 ;;
esac
