-- Releases locks without waiters.
-- KEYS: the locks; ARGV: an id for each
-- returns 1 for each released lock; 0 if a process may wait, or the caller does not have the lock
local freed = {}
for i, lock in ipairs(KEYS) do
  freed[i] = redis.pcall('GET', lock) == ARGV[i] and redis.call('DEL', lock) or 0
end
return freed
