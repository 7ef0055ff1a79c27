-- Releases locks for which no process waits.
-- KEYS: the locks; ARGV: the id of each lock's owner
-- returns for each lock 1 if it was released; 0 if a process may wait for it or the id does not own it
local freed = {}
for i, lock in ipairs(KEYS) do
  freed[i] = redis.pcall('GET', lock) == ARGV[i] and redis.call('DEL', lock) or 0
end
return freed
