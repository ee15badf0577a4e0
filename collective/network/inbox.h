// Inbox: where parcels of other members wait for the exchange that uses them, or the exchange for
// them.
//
// A parcel stays in the message that brought it. Its bytes are used in place, and the call that
// brought it is answered then.
#pragma once
#include <kj/async.h>

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/tensor/tensor.h"

namespace cairn {

// A message from one member to another in a step of a call.
struct Parcel {
  std::uint64_t call = 0;
  std::uint32_t part = 0, step = 0;
  std::uint64_t signature = 0;     // of the call
  std::string asked;               // the call for people; with part 0
  std::optional<TensorType> type;  // with the first piece of a tensor
  Tensor strings;                  // with it, if it is of strings
  kj::ArrayPtr<const kj::byte> data;
};

// Thread: one loop's.
class Inbox {
 public:
  struct Key {
    int from = 0;
    std::uint64_t call = 0;
    std::uint32_t part = 0, step = 0;
    auto operator<=>(const Key&) const = default;
  };

  // of one member's parcels, with kParcelBytes for each: four times what a member of ours sends
  // before it is answered
  static constexpr std::size_t kWaitingBytesMax = std::size_t{64} << 20;
  static constexpr std::size_t kParcelBytes = 256;

  // Resolves when the parcel was used. Dropping the promise takes the parcel back: the connection
  // has ended, and its bytes are going.
  //   Errors  InvalidArgument: there is one of that key already. ResourceExhausted: above
  //           kWaitingBytesMax.
  kj::Promise<void> put(int from, Parcel parcel);
  // Resolves when there is a parcel of this key. One waiter per key.
  kj::Promise<void> arrival(Key key);
  // Calls use(parcel) at once and lets the parcel go.
  //   Errors  Unavailable: it was taken back between its arrival and now; what `use` throws.
  template <typename Use>
  void take(const Key& key, Use use);
  // Whether something waits for a parcel of that member.
  bool waits_for(int from) const;

 private:
  struct Deposit;
  [[noreturn]] static void taken_back(const Key& key);
  std::map<Key, Deposit*> deposits_;          // each owned by its put()
  std::map<int, std::size_t> waiting_bytes_;  // by member
  std::map<Key, kj::Own<kj::PromiseFulfiller<void>>> waiters_;
};

struct Inbox::Deposit {
  Deposit(Inbox& inbox, Key key, Parcel parcel);
  ~Deposit();
  Inbox& inbox;
  const Key key;
  const Parcel parcel;
  kj::Own<kj::PromiseFulfiller<void>> used;
};

template <typename Use>
void Inbox::take(const Key& key, Use use) {
  const auto found = deposits_.find(key);
  if (found == deposits_.end()) taken_back(key);
  Deposit& deposit = *found->second;
  use(deposit.parcel);
  deposits_.erase(key);
  deposit.used->fulfill();
}

}  // namespace cairn
