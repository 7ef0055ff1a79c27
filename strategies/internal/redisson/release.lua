-- Gives up one hold of the lock and tells the waiters when it was the last.
-- KEYS: lock   ARGV: lease in ms, owner, and where waiters listen: channel, PUBLISH or SPUBLISH
-- returns nil when it was not the caller's, 0 when still held, 1 when freed
if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then
  return nil
end
if redis.call('HINCRBY', KEYS[1], ARGV[2], -1) > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return 0
end
redis.call('DEL', KEYS[1])
if ARGV[3] then
  redis.call(ARGV[4], ARGV[3], '0')
end
return 1
