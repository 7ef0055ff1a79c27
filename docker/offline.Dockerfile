# An image of this machine's redis-server and redis-cli, for Docker without access to a registry. docker/setup.sh copies
# the programs and their libraries into root/, and builds lockbench-redis:offline from this file.
FROM scratch
COPY root/ /
CMD ["redis-server"]
