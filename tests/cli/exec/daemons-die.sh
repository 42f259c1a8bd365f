# A daemon in a session of its own, started twice over, dies with the box.
word=$(unique)
"$PX" exec -c "setsid -f sh -c 'setsid -f sleep $word; sleep $word' >/dev/null 2>&1 </dev/null; until [ \$(pgrep -c sleep) -ge 2 ]; do :; done; pgrep -c sleep"
until_gone "$word"
