-- Repairs a queue: grants the lock if it is free, marks it if it is held, and renews the TTL of the queue.
-- ARGV: as in grant.lua, then the id of the owner that was seen last ('' for none) and the caller's entry "id ttl"
-- returns the owner, its TTL in ms, Redis's time in µs, the index of the caller's entry in the queue
-- (-1 if it is not queued), and the result of grant (0 if the lock was not free or the queue is empty)
local owner, told = redis.call('GET', lock), 0
if redis.call('EXISTS', queue) == 1 then
  if not owner then
    local seen = string.sub(ARGV[3], 1, 26)
    if seen ~= '' and seen ~= ARGV[2] then -- its lease ran out: drop all entries of its process
      local first, others = redis.call('LRANGE', queue, 0, 499), {} -- more would take too long
      for i = #first, 1, -1 do
        if string.sub(first[i], 1, 26) ~= seen then
          others[#others + 1] = first[i]
        end
      end
      if #others < #first then
        redis.call('LPOP', queue, #first)
        if #others > 0 then
          redis.call('LPUSH', queue, unpack(others))
        end
      end
    end
    told = grant(now())
    owner = redis.call('GET', lock)
  else
    mark(owner)
  end
  redis.call('PEXPIRE', queue, 600000)
end
local place = redis.call('LPOS', queue, ARGV[4]) or -1
return {owner or '', redis.call('PTTL', lock), string.format('%.0f', now()), place, told}
