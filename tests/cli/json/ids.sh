# How the ids were had, root and user each in their way.
need jq
"$PX" --json exec -- true | jq -r '.isolation.mechanisms[] | select(startswith("ids="))' >"$TMP/ids"
case $AS/$(cat "$TMP/ids") in
root/ids=range | user/ids=single | user/ids=subordinate) echo right ;;
*) cat "$TMP/ids" ;;
esac
