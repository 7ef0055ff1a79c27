-- Takes the lock if it is free; otherwise adds the caller to the set of waiters.
-- KEYS: lock, waiters, signal   ARGV: token, TTL in ms, mode, when releases signal
-- mode: try (do not wait), first (wait if it is taken), again (waits already)
-- returns nil if taken, otherwise the lock's PTTL
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  if ARGV[3] == 'again' then
    redis.call('SREM', KEYS[2], ARGV[1])
    if ARGV[4] ~= 'always' and redis.call('EXISTS', KEYS[2]) == 0 then
      redis.call('DEL', KEYS[3])
    end
  end
  return nil
end
local left = redis.call('PTTL', KEYS[1])
if ARGV[3] ~= 'try' then
  -- The set outlives the wait that follows, and every waiter renews its TTL.
  redis.call('SADD', KEYS[2], ARGV[1])
  redis.call('PEXPIRE', KEYS[2], math.max(left, 0) + 2 * ARGV[2])
end
return left
