-- Takes the lock if it is free, or adds a hold if the caller has it. It never shortens a lease.
-- KEYS: lock   ARGV: lease in ms, owner
-- returns nil if taken, otherwise the lock's PTTL
if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then
  if redis.call('HINCRBY', KEYS[1], ARGV[2], 1) == 1 or redis.call('PTTL', KEYS[1]) < tonumber(ARGV[1]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[1])
  end
  return nil
end
return redis.call('PTTL', KEYS[1])
