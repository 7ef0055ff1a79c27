-- Releases locks for which nobody waits.
-- KEYS: the locks; ARGV: an id for each
-- returns for each 1; 0 when somebody may wait, or the lock is not the caller's
local freed = {}
for i, lock in ipairs(KEYS) do
  freed[i] = redis.pcall('GET', lock) == ARGV[i] and redis.call('DEL', lock) or 0
end
return freed
