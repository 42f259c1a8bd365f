# Printed without doing anything; what it names need not work.
need jq
"$PX" exec --plan --memory 64m -v /etc:/x:ro --timeout 5 -- nosuch arg >"$TMP/plan"
jq -c '[.schema, .tier, .argv, (.steps | length > 50)]' "$TMP/plan"
jq -r '.steps[] | select(.target == "/x" and .op == "bind") | [.op, .source, (.attributes | join(","))] | join(" ")' "$TMP/plan"
jq -r '.environment[]' "$TMP/plan" | sort
