# Words reach the command byte for byte: empty ones, blanks, newlines, bytes that are no text.
"$PX" exec -- printf '<%s>' '' 'a b' $'new\nline' '--' '-x' $'\xff\xfe' '*' "it's"
