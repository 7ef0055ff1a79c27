#!/bin/sh
# Measures with three generators in the current context's namespace, and prints their report. It makes the password of
# their Redis, and deletes the job of the run before: Kubernetes does not change a job. TIMEOUT is in seconds.
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
*Failed*) say "the job failed: kubectl describe job lockbench" && exit 1 ;;
*) say "the job has not ended within ${TIMEOUT:-900} s: kubectl describe job lockbench" && exit 1 ;;
esac
