# Somebody left behind keeps stdout open: the run ends with the command and nobody waits.
word=$(unique)
timeout 20 "$PX" exec -c "sleep $word & echo started"
until_gone "$word"
