// Gate: at most so many units are inside at once, whatever a unit is: places at work, bytes under
// way. First come, first served: a large wish is not starved by small ones behind it.
//
//   Gate at_work(2);
//   Gate::Pass pass = co_await at_work.enter();   // inside until `pass` is dropped
//
// For other waits of one loop: Signal ("look again"), worker::ComputeTurns (one after the other,
// each after the loop is idle), worker::PushGate (hold all that have not begun).
#pragma once
#include <kj/async.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace cairn::rpc {

enum class Company : std::uint8_t { kShared, kAlone };  // kAlone: no other is inside meanwhile

// Thread  one loop's. Passes may outlive the gate.
class Gate {
  struct State;

 public:
  // Units inside, given back when it is dropped. An empty one holds nothing.
  class Pass {
   public:
    Pass() = default;
    Pass(Pass&& other) noexcept;
    Pass& operator=(Pass&& other) noexcept;
    ~Pass() { leave(); }
    void leave() noexcept;
    std::size_t units() const { return units_; }

   private:
    friend struct State;
    Pass(std::shared_ptr<State> state, std::size_t units)
        : state_(std::move(state)), units_(units) {}
    std::shared_ptr<State> state_;
    std::size_t units_ = 0;
  };

  // `closed` is the error's message for those that wait once the gate is closed.
  explicit Gate(std::size_t limit, std::string closed = "the gate was closed");
  ~Gate();  // as close()
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // Waits until the units fit beside those inside; more than the limit fit an empty gate.
  // Dropping the promise gives up the place in the queue.
  //   Errors  Unavailable: the gate is closed.
  kj::Promise<Pass> enter(std::size_t units = 1, Company company = Company::kShared);
  // Lets more in at once; after a lower limit, lets none in until enough have left.
  void set_limit(std::size_t limit);
  // Entries that wait, and all later ones, fail. Those inside are not touched.
  void close();
  std::size_t inside() const;  // units
  std::size_t waiting() const;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace cairn::rpc
