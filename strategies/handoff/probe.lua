-- Does to a key of its own what the other scripts do, and what is done without a script,
-- so that a right that is missing shows at once.
local scratch, heard = key, nil
for _, command in ipairs({
  {'RPUSH', scratch, 'a', 'b', 'c'}, {'PEXPIRE', scratch, 1000}, {'LRANGE', scratch, 0, 1}, {'LINDEX', scratch, 0}, {'LSET', scratch, 0, 'a'},
  {'LINSERT', scratch, 'BEFORE', 'b', 'd'}, {'LREM', scratch, 1, 'd'},
  {'RPUSHX', scratch, 'e'}, {'LTRIM', scratch, 9, -1}, {'SET', scratch, ''}, {'DEL', scratch},
  {'GET', base .. process}, {publish, base .. process, ''},
}) do
  heard = redis.pcall(unpack(command))
  if type(heard) == 'table' and heard.err then
    return redis.error_reply(heard.err .. ' (' .. command[1] .. ')') -- the reason first, as Redis says it
  end
end
return reply('R')
