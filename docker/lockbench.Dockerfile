# lockbench alone, without a server: docker run --rm --network host lockbench -u redis://127.0.0.1:6379 -s spin,pubsub
# For rediss:// it needs certificates: -v /etc/ssl/certs:/etc/ssl/certs:ro, or --ca.
FROM scratch
COPY lockbench /lockbench
ENTRYPOINT ["/lockbench"]
