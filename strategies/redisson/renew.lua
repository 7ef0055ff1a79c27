-- Sets the TTL of the lock if the caller still has it.
-- KEYS: lock   ARGV: lease in ms, owner, 1 never to shorten the TTL
-- returns 1, or 0 if the caller did not have the lock
if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then
  return 0
end
if ARGV[3] == '0' or redis.call('PTTL', KEYS[1]) < tonumber(ARGV[1]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
return 1
