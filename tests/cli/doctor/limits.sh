# A limit is called enforced only where a box with that limit starts; where none starts there are words for what is missing.
need jq
"$PX" --json doctor >all || true
box=false
"$PX" exec -m 64m --limits require -- true 2>/dev/null && box=true
jq -c --argjson box "$box" '.rows[] | select(.name == "memory") | [.state != "enforced" or $box, $box or .raise != null]' all
