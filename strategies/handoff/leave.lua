-- Has ids want the lock no longer: releases it if one of them is the owner, and takes them
-- out of the queue.
-- ARGV: …, how many entries at each end of the queue are looked at (0: all), "id ttl" of each; without the TTL of
-- those that were never queued
-- returns what grant returns; 0 when the lock was not theirs
--
-- A look at the two ends alone costs no more for a long queue: an entry in the middle stays, and its process gives
-- the lock up at its turn. A process that closes has no later turn, and looks at all.
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
