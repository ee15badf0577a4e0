// Task<T>: a C++20 coroutine on the RPC library's event loop.
//
//   Task<Rows> pull(...) {
//     auto reply = co_await shard.pullRequest().send();
//     co_return rows_of(reply);
//   }
//
//   Awaits  kj::Promise<U> and Task<U>. Started when awaited or turned into a kj::Promise; runs at
//           once to its first wait.
//   Errors  only cairn::Error comes out of a co_await: what the library reports is decoded
//           (error_wire.h), a lost connection reads as UnavailableError. What a Task throws reaches
//           a remote caller with code, message and task.
//   Cancel  dropping the promise destroys the frame at the wait it is in. A frame must not destroy
//           its own owner.
//   Thread  the loop's thread it was created on.
//
// It leans on kj::_ (stable within Cap'n Proto 0.9, changed in 1.0); those internals stay in this
// file. It is not itself a kj::Promise because g++ 12.2 dies on a coroutine whose return type has a
// destructor that may throw.
#pragma once
#include <kj/async.h>

#include <chrono>
#include <coroutine>
#include <utility>

namespace cairn::rpc {

// error_wire.h has the contract; declared here so that this header stays light.
kj::Exception to_kj(std::exception_ptr error);
[[noreturn]] void throw_from_kj(const kj::Exception& error);

template <typename T>
class Task;

namespace detail {

// The frame itself is the KJ event: an event may not be destroyed while it fires, and the frame
// outlives every await.
struct Resumable : kj::_::Event {
  ~Resumable() noexcept {}
  kj::Maybe<kj::Own<kj::_::Event>> fire() override {
    self.resume();
    return nullptr;
  }
  void traceEvent(kj::_::TraceBuilder&) override {}
  std::coroutine_handle<> self;
};

template <typename U>
struct Awaiter {
  explicit Awaiter(kj::Promise<U>&& promise) : node(kj::_::PromiseNode::from(kj::mv(promise))) {}
  bool await_ready() const { return false; }
  template <typename P>
  void await_suspend(std::coroutine_handle<P> handle) {
    node->setSelfPointer(&node);
    node->onReady(&handle.promise());
  }
  U await_resume() {
    node->get(result);
    node = nullptr;
    KJ_IF_MAYBE (error, result.exception) throw_from_kj(*error);
    if constexpr (!std::is_void_v<U>) {
      KJ_IF_MAYBE (value, result.value) return kj::mv(*value);
      KJ_UNREACHABLE;  // a promise ends in a value or an exception
    }
  }
  kj::Own<kj::_::PromiseNode> node;
  kj::_::ExceptionOr<kj::_::FixVoid<U>> result;
};

template <typename T>
struct Frame;

// Lives in the promise; dropping that destroys the frame.
template <typename T>
struct Owner {
  Owner(kj::PromiseFulfiller<T>& fulfiller, std::coroutine_handle<Frame<T>> handle)
      : handle(handle) {
    handle.promise().fulfiller = &fulfiller;
  }
  ~Owner() { handle.destroy(); }
  KJ_DISALLOW_COPY(Owner);
  std::coroutine_handle<Frame<T>> handle;
};

}  // namespace detail

template <typename T>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::Frame<T>;
  using Value = T;
  explicit Task(std::coroutine_handle<promise_type> handle) noexcept : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&&) = delete;
  ~Task() noexcept {
    if (handle_) handle_.destroy();
  }

  operator kj::Promise<T>() { return start(); }
  kj::Promise<T> start() {
    auto handle = std::exchange(handle_, nullptr);
    auto promise = kj::newAdaptedPromise<T, detail::Owner<T>>(handle);
    handle.resume();
    return promise;
  }

 private:
  std::coroutine_handle<promise_type> handle_;
};

namespace detail {

template <typename T>
struct FrameBase : Resumable {
  Task<T> get_return_object() {
    auto handle = std::coroutine_handle<Frame<T>>::from_promise(static_cast<Frame<T>&>(*this));
    self = handle;
    return Task<T>(handle);
  }
  std::suspend_always initial_suspend() { return {}; }
  std::suspend_always final_suspend() noexcept { return {}; }
  void unhandled_exception() { fulfiller->reject(to_kj(std::current_exception())); }
  template <typename U>
  Awaiter<U> await_transform(kj::Promise<U>&& promise) {
    return Awaiter<U>(kj::mv(promise));
  }
  template <typename U>
  Awaiter<U> await_transform(Task<U>&& task) {
    return Awaiter<U>(task.start());
  }
  kj::PromiseFulfiller<T>* fulfiller = nullptr;
};

template <typename T>
struct Frame : FrameBase<T> {
  void return_value(T value) { this->fulfiller->fulfill(kj::mv(value)); }
};

template <>
struct Frame<void> : FrameBase<void> {
  void return_void() { fulfiller->fulfill(); }
};

}  // namespace detail

// For a served method that does not wait: what it throws becomes the reply.
template <typename Method>
kj::Promise<void> at_once(Method method) {
  try {
    method();
    return kj::READY_NOW;
  } catch (...) {
    return to_kj(std::current_exception());
  }
}

}  // namespace cairn::rpc
