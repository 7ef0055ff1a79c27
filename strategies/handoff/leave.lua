-- Withdraws ids of a process: releases the lock if one of them owns it, and removes the others from the queue.
-- ARGV: as in grant.lua, then how many entries at each end of the queue are searched (0: all), and the entry
-- "id ttl" of each id, or only the id if it was never queued
-- returns the result of grant, or 1 if no process waited; 0 if none of the ids owned the lock
--
-- Searching only the two ends has a bounded cost. An entry in the middle stays in the queue, and its process releases
-- the lock at its turn. A process that closes handles no later turn, so it searches the whole queue.
local near = ARGV[3]

local function remove(entry)
  if redis.call('LPOS', queue, entry, 'MAXLEN', near) then
    redis.call('LREM', queue, 1, entry)
  elseif redis.call('LPOS', queue, entry, 'RANK', -1, 'MAXLEN', near) then
    redis.call('LREM', queue, -1, entry)
  end
end

local owner, told = redis.call('GET', lock), 0
for i = 4, #ARGV do
  local id, ttl = string.match(ARGV[i], '^(%S+)(.*)')
  if owner == id then
    told, owner = redis.call('DEL', lock), false
  elseif owner == id .. '+' then
    told, owner = grant(now()), false
  elseif ttl ~= '' then
    remove(ARGV[i])
  end
end
return told
