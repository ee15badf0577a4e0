// Bytes of a file as a message shows them. A bad cell is quoted in logs and on terminals, and may
// hold anything: escape sequences that a terminal would obey, half a character, a megabyte.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace cairn {

// `bytes` with each control character and each byte that is not part of valid UTF-8 as \xNN, cut
// after about `most` bytes with "..." behind them; no character is cut in two.
std::string printable(std::string_view bytes, std::size_t most = 40);

}  // namespace cairn
