# A command that will not hear of it.
word=$(unique)
try "$PX" exec --timeout 300ms -c "trap '' TERM INT HUP; sh -c 'trap \"\" TERM; sleep $word' & sleep $word; sleep $word" 2>/dev/null
until_gone "$word"
