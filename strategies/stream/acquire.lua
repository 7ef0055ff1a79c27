-- Takes the lock if it is free; else notes that the caller waits.
-- KEYS: lock, waiters, wake-ups   ARGV: token, TTL in ms, mode
-- mode: try (do not wait), first (wait if it is taken), again (waits already)
-- returns 1 if taken, else 0; 1 if the caller's waiting had been forgotten, else 0;
-- and if not taken the lock's PTTL and the last wake-up: its id, its number
local again = ARGV[3] == 'again'
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  local forgotten = 0
  if again then
    forgotten = 1 - redis.call('SREM', KEYS[2], ARGV[1])
    if redis.call('EXISTS', KEYS[2]) == 0 then
      redis.call('DEL', KEYS[3])
    end
  end
  return {1, forgotten}
end
local left = redis.call('PTTL', KEYS[1])
if ARGV[3] == 'try' then
  return {0, 0, left, '0-0', 0}
end
local added = redis.call('SADD', KEYS[2], ARGV[1])
-- It outlives the wait that follows and those that others have begun.
local outlive = math.max(left, 0) + 2 * ARGV[2]
if redis.call('PTTL', KEYS[2]) < outlive then
  redis.call('PEXPIRE', KEYS[2], outlive)
end
local last = redis.call('XREVRANGE', KEYS[3], '+', '-', 'COUNT', 1)[1]
return {0, again and added or 0, left, last and last[1] or '0-0', last and tonumber(last[2][2]) or 0}
