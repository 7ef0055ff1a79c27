-- Ends the interest of ids in the lock: releases it if one of them is the owner, and removes them
-- from the queue.
-- ARGV: …, how many entries at each end of the queue are searched (0: all), "id ttl" of each; without the TTL of
-- those that were never queued
-- returns the result of grant; 0 if none of them had the lock
--
-- Searching only the two ends has a bounded cost: an entry in the middle stays, and its process releases the lock
-- at its turn. A process that closes handles no later turn, so it searches the whole queue.
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
