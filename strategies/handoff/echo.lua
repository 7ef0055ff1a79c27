-- Publishes a message to the calling process, which learns in this way whether its subscription is on the
-- server that executes its commands.
-- ARGV: as in grant.lua, then the message
-- returns how many connections have received the message
--
-- Like a grant message it is not replicated, because subscribers on a replica must not receive it.
redis.set_repl(redis.REPL_NONE)
return redis.call('SPUBLISH', ARGV[1] .. ARGV[2], ARGV[3])
