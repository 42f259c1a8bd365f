# Printed without doing anything: not even a process is made, and no user namespace is needed.
need jq
"$PX" exec --plan --memory 64m -v /etc:/x:ro --timeout 5 -- nosuch arg >"$TMP/plan"
jq -c '[.schema, .tier, .argv, (.steps | length > 50)]' "$TMP/plan"
jq -r '.steps[] | select(.target == "/x") | [.op, .source, (.attributes | join(","))] | join(" ")' "$TMP/plan" | tail -1
jq -r '.environment[]' "$TMP/plan" | sort
