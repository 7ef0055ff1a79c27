-- Takes the lock if it is free and nobody waits; else queues, or grants it to whom it is due.
-- ARGV: …, mode, how long to keep the lock after the lease in ms, entry
-- mode: wait, try (do not queue), check (only see that a free lock is granted)
-- returns G (the caller has it), Q (it has not), or O (this connection is not known as the latest)
local mode, entry = ARGV[5], ARGV[7]
local id, ttl, size
if mode ~= 'check' then
  if late() then
    return reply('O')
  end
  id, ttl, size = string.match(entry, '^(%S+) %d+ (%d+) (%d+)$')
  if owner == id then
    told = granted()
    return reply('G')
  end
elseif not two[1] then
  return reply('Q')
end
local free = owner == '-' or now > expiry
if free and two[2] and mode ~= 'wait' then
  grant(two[2])
  free = owner == '-' and not more and not refused
  two[2] = nil
end
if free and not two[2] and mode ~= 'check' then
  take(id, ttl, size)
  redis.call(two[1] and 'LSET' or 'RPUSH', key, unpack(two[1] and {0, state()} or {state()}))
  keep(ARGV[6])
  told = granted()
  return reply('G')
end
if mode == 'wait' then
  redis.call('RPUSH', key, entry)
  if free then
    grant(two[2])
  end
end
keep(ARGV[6])
return reply('Q')
