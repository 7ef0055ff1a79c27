-- Takes the lock if it is free and nobody waits; else queues, or grants it to whom it is due.
-- ARGV: …, mode, how long to keep an idle lock in ms, entry
-- mode: wait, try (do not queue), check (only see that a free lock is granted)
-- returns G (the caller has it), Q (it has not), or O (the caller's connection is an old one)
local mode, keep, entry = ARGV[5], ARGV[6], ARGV[7]
local id, ttl, size
if mode ~= 'check' then
  local beat = redis.call('GET', base .. process)
  if beat and beat ~= connection then
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
  redis.call('PEXPIRE', key, keep)
  told = granted()
  return reply('G')
end
if mode == 'wait' then
  redis.call('RPUSH', key, entry)
  if free then
    grant(two[2])
  end
end
redis.call('PEXPIRE', key, keep)
return reply('Q')
