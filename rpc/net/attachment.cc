#include "rpc/net/attachment.h"

#include <sys/mman.h>

#include <functional>
#include <iterator>
#include <utility>

#include "core/base/error.h"

namespace cairn::rpc {
namespace {

constexpr std::size_t kKeyBytes = 8;  // the alignment of external data in Cap'n Proto
constexpr std::size_t kKeysBytes = std::size_t{512} << 20;  // in which keys begin
// An attachment that begins at the last key ends within the range too.
constexpr std::size_t kRangeBytes = kKeysBytes + AttachmentKeys::kAttachmentBytesMax;

std::size_t padded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

// Address space without memory behind it: it costs nothing but its entry in the process's map. It
// is never given back, because a stray pointer into it must fault for as long as the process lives.
const std::byte* range() {
  static const std::byte* const reserved = [] {
    void* const made =
        ::mmap(nullptr, kRangeBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return made == MAP_FAILED ? nullptr : static_cast<const std::byte*>(made);
  }();
  return reserved;
}

}  // namespace

Attachment::Attachment(const void* data, std::size_t bytes, std::shared_ptr<void> owner)
    : bytes_(bytes),
      first_{kj::arrayPtr(static_cast<const kj::byte*>(data), bytes), std::move(owner)} {
  pad();
}

Attachment::Attachment(std::vector<ByteStream::Piece> pieces) : others_(std::move(pieces)) {
  for (const auto& piece : others_) bytes_ += piece.bytes.size();
  pad();
}

Attachment::Attachment(std::shared_ptr<Loan> loan, std::size_t bytes) : bytes_(bytes) {
  const std::size_t lent = loan->bytes().size();
  CAIRN_CHECK(lent == padded(bytes), lent, " bytes lent for an attachment of ", bytes);
  first_.loan = loan.get();
  first_.bytes = kj::arrayPtr(reinterpret_cast<const kj::byte*>(loan->bytes().data()), lent);
  first_.owner = std::move(loan);
}

// Cap'n Proto counts in words and sends whole ones, so the last piece is made longer by what is
// missing; the owner has promised that memory is readable so far.
void Attachment::pad() {
  if (bytes_ == 0) return;
  auto& last = others_.empty() ? first_ : others_.back();
  last.bytes = kj::arrayPtr(last.bytes.begin(), last.bytes.size() + padded(bytes_) - bytes_);
}

void Attachment::append_to(std::vector<ByteStream::Piece>& pieces) {
  if (first_.bytes.size() > 0) pieces.push_back(std::exchange(first_, {}));
  pieces.insert(pieces.end(), std::make_move_iterator(others_.begin()),
                std::make_move_iterator(others_.end()));
  others_.clear();
  bytes_ = 0;
}

const void* AttachmentKeys::next(std::size_t bytes) {
  const std::byte* const begin = range();
  if (bytes > kAttachmentBytesMax || begin == nullptr)
    throw ResourceExhaustedError(str("no key for an attachment of ", bytes, " bytes: at most ",
                                     kAttachmentBytesMax, " bytes are attached, and ", kRangeBytes,
                                     " bytes of address space are needed"));
  const std::byte* const key = begin + next_;
  next_ = (next_ + kKeyBytes) % kKeysBytes;
  return key;
}

// By std::less, which orders unrelated pointers; the operator < need not.
bool AttachmentKeys::is_key(const void* data) {
  const std::byte *const begin = range(), *const at = static_cast<const std::byte*>(data);
  return begin != nullptr && std::less_equal<>()(begin, at) &&
         std::less<>()(at, begin + kKeysBytes);
}

}  // namespace cairn::rpc
