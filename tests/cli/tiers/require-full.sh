# Fails closed or runs in full; it never says one and does the other.
need jq
"$PX" --json exec --require full -- true | jq -r .isolation.tier
"$PX" --json exec --require landlock -- true | jq -r .isolation.tier
