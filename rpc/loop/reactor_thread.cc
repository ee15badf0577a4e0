#include "rpc/loop/reactor_thread.h"

#include <pthread.h>

#include <exception>
#include <future>
#include <thread>

namespace cairn::rpc {

struct ReactorThread::Thread {
  std::thread thread;
};

ReactorThread::ReactorThread(std::string name, ReactorOptions options)
    : thread_(std::make_unique<Thread>()) {
  std::promise<Reactor*> ready;
  auto standing = ready.get_future();
  thread_->thread =
      std::thread([name = std::move(name), options, ready = std::move(ready)]() mutable {
        // Linux refuses names of more than 15 bytes.
        pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
        // KJ binds a loop to the thread on which it is made, so the reactor is made and destroyed
        // here; the constructor waits until it stands, or has what went wrong thrown on its own
        // thread.
        std::unique_ptr<Reactor> reactor;
        try {
          reactor = make_reactor(options);
        } catch (...) {
          return ready.set_exception(std::current_exception());
        }
        ready.set_value(reactor.get());
        reactor->run();
      });
  try {
    reactor_ = standing.get();
  } catch (...) {
    thread_->thread.join();
    throw;
  }
  mailbox_ = reactor_->mailbox();
}

ReactorThread::~ReactorThread() { stop(); }

void ReactorThread::run(Work work) {
  // The promise dies with the posted work, so that work which never ran shows as broken.
  auto done = std::make_shared<std::promise<void>>();
  auto result = done->get_future();
  bool posted = mailbox_->post([work = std::move(work), done = std::move(done)] {
    try {
      work();
      done->set_value();
    } catch (...) {
      done->set_exception(std::current_exception());
    }
  });
  if (!posted) throw UnavailableError("the thread has stopped");
  try {
    result.get();
  } catch (const std::future_error&) {
    throw UnavailableError("the thread stopped before the work ran");
  }
}

void ReactorThread::stop() {
  if (!thread_->thread.joinable()) return;
  reactor_->stop();
  thread_->thread.join();
}

}  // namespace cairn::rpc
