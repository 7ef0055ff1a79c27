-- Takes the lock if it is free and the queue is empty, otherwise queues the caller.
-- ARGV: as in grant.lua, then the id, the TTL in ms and the mode
-- mode: try (takes a free lock even if processes are queued, and does not queue), wait (queues at the end),
-- again (as wait, unless the id is queued already), front (queues before all others)
-- returns the result of tell if the caller has the lock, otherwise the lock's TTL in ms and the number of entries
-- in the queue up to the caller's (front: of all entries, try: 0)
local id, ttl, mode = ARGV[3], ARGV[4], ARGV[5]
local entry = id .. ' ' .. ttl
local owner = redis.call('GET', lock)
if owner == id or owner == id .. '+' then
  return tell(id, now())
end
if not owner then
  if mode == 'try' or redis.call('EXISTS', queue) == 0 then
    redis.call('SET', lock, id, 'PX', ttl)
    return tell(id, now())
  end
elseif mode == 'try' then
  return {redis.call('PTTL', lock), 0}
end
local place = mode == 'again' and redis.call('LPOS', queue, entry)
place = place and place + 1 or redis.call(mode == 'front' and 'LPUSH' or 'RPUSH', queue, entry)
redis.call('PEXPIRE', queue, 600000)
if not owner then
  local told = grant(now())
  if type(told) == 'string' then
    return told
  end
else
  mark(owner)
end
return {redis.call('PTTL', lock), place}
