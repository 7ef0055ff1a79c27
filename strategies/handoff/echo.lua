-- Publishes to the process itself, which checks by this that it receives messages from the server of its commands.
-- ARGV: …, the message
-- returns how many connections have received it
--
-- The message is not replicated, like those of a grant, because listeners at a replica must not receive it.
redis.set_repl(redis.REPL_NONE)
return redis.call('SPUBLISH', ARGV[1] .. ARGV[2], ARGV[3])
