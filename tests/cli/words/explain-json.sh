need jq
"$PX" --json explain PX031 | jq -c '[.details.code, .details.reason, (.details.why | length > 0), (.details.fix | length > 0)]'
