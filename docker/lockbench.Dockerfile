# An image with lockbench and without a server. CGO_ENABLED=0 go build builds the program that it copies.
#
#     docker run --rm --network host lockbench -u redis://127.0.0.1:6379 -s spin,pubsub
#
# For rediss:// the container needs certificates: -v /etc/ssl/certs:/etc/ssl/certs:ro, or --ca-file. To write files, it
# needs a directory that its user may write to: -u $(id -u) -v $PWD:/out.
FROM scratch
COPY lockbench /lockbench
USER 65532:65532
ENTRYPOINT ["/lockbench"]
