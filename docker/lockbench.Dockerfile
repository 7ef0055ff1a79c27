# lockbench alone, without a server: docker run --rm --network host lockbench -u redis://127.0.0.1:6379 -s spin,pubsub
# For rediss:// it needs certificates: -v /etc/ssl/certs:/etc/ssl/certs:ro, or --ca-file; for files of its own
# a directory of this user: -u $(id -u) -v $PWD:/out. CGO_ENABLED=0 go build makes the program that it needs.
FROM scratch
COPY lockbench /lockbench
USER 65532:65532
ENTRYPOINT ["/lockbench"]
