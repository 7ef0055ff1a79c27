-- Takes the lock if it is free or the caller's already, once more then.
-- KEYS: lock   ARGV: lease in ms, owner
-- returns nil when taken, else the lock's PTTL
if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then
  redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return nil
end
return redis.call('PTTL', KEYS[1])
