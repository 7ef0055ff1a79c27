# This machine's redis-server and redis-cli, for Docker without a registry. docker/setup.sh
# puts them with their libraries into root/, and builds lockbench-redis:offline of that.
FROM scratch
COPY root/ /
CMD ["redis-server"]
