-- Releases all holds of the lock, or one of several, and notifies the waiters if none is left.
-- KEYS: lock   ARGV: lease in ms, owner, 1 to release only one hold, and the topic of the waiters:
-- channel, or '' for no message, and PUBLISH or SPUBLISH
-- returns nil if the caller did not have the lock, 0 if it is still held, 1 if it is free
if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then
  return nil
end
if redis.call('HINCRBY', KEYS[1], ARGV[2], -1) > 0 and ARGV[3] == '1' then
  if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[1]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[1])
  end
  return 0
end
redis.call('DEL', KEYS[1])
if ARGV[4] ~= '' then
  redis.call(ARGV[5], ARGV[4], '0')
end
return 1
