-- Frees the lock if it is still the caller's and, when somebody waits, adds a wake-up.
-- KEYS: lock, waiters, wake-ups   ARGV: token, '1' if the caller may be waiting still
-- returns 1, or 0 when it was not the caller's
if ARGV[2] == '1' and redis.call('SREM', KEYS[2], ARGV[1]) == 1 and redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('DEL', KEYS[3])
end
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
redis.call('DEL', KEYS[1])
local left = redis.call('PTTL', KEYS[2])
if left > 0 then
  -- Room for a reader that lags; numbered, so that it sees whether any was trimmed away.
  local last = redis.call('XREVRANGE', KEYS[3], '+', '-', 'COUNT', 1)[1]
  redis.call('XADD', KEYS[3], 'MAXLEN', '~', 256, '*', 'n', (last and tonumber(last[2][2]) or 0) + 1)
  redis.call('PEXPIRE', KEYS[3], left)
end
return 1
