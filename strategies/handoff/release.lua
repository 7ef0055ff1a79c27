-- Gives the lock up and grants it to the next.
-- ARGV: …, id, the entry that leaves the queue if it waits still, the entry to queue first; '' for none
-- returns R (the lock was the caller's, or the caller was the last to release it) or N
local id, leaves, queues = ARGV[5], ARGV[6], ARGV[7]
if not two[1] then
  if queues == '' then
    return reply('N')
  end
  redis.call('RPUSH', key, state())
end
if queues ~= '' then
  redis.call('RPUSH', key, queues)
  two[2] = two[2] or queues
end
if owner == id then
  local held = now <= expiry
  owner, last = '-', id
  grant(two[2])
  return reply(held and 'R' or 'N')
end
if leaves ~= '' and redis.call('LREM', key, 1, leaves) == 1 and leaves == two[2] then
  two[2] = redis.call('LINDEX', key, 1)
end
local before = last
if two[2] and (owner == '-' or now > expiry) then
  grant(two[2])
end
return reply(before == id and 'R' or 'N')
