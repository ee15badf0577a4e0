// Engine: the coordinator's half that lives on a loop. It knows who is there, sends closures, takes
// results, repairs what breaks, and makes the cut of a checkpoint.
//
//   beginning, end  engine_start.cc      connect, join the session, let go
//   dispatch        engine.cc            queue -> lane
//   results         engine_results.cc    lane -> result, or another run
//   joining         engine_join.cc       one coordinator at a time
//   workers         engine_workers.cc    connect, watch, fence and put back
//   ps              engine_ps.cc         connect, watch, rebuild a lost one
//   announcements   engine_announce.cc   which closures there are, told to shards
//   layout          engine_layout.cc     tables on shards and lanes
//   checkpoints     engine_cut.cc        the cut
//                   engine_checkpoint.cc save, restore
//   Thread  the reactor's, but for queue(), functions and stats(), which any thread may use.
#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "coordinator/closure_queue.h"
#include "coordinator/cluster_spec.h"
#include "coordinator/engine_options.h"
#include "coordinator/in_flight.h"
#include "coordinator/lane_client.h"
#include "coordinator/least_loaded.h"
#include "coordinator/loss_ledger.h"
#include "coordinator/pipelines.h"
#include "coordinator/restore_status.h"
#include "coordinator/send_window.h"
#include "coordinator/shard_client.h"
#include "coordinator/stuck_watch.h"
#include "coordinator/variable_registry.h"
#include "core/base/clock.h"
#include "core/base/disk.h"
#include "core/base/offload.h"
#include "rpc/heartbeat.h"
#include "rpc/network.h"
#include "rpc/signal.h"
#include "rpc/task_group.h"
#include "storage/manifest.h"

namespace cairn {

namespace storage {
struct FolderLock;
}

class Engine {
 public:
  struct CheckpointView;  // the checkpoint that rows are restored from: checkpoint_view.h
  struct Cut;
  // All references outlive the engine.
  struct Parts {
    rpc::Reactor& reactor;
    rpc::Network& network;
    Offload& offload;
    Disk& disk;
    const Clock& clock;
  };
  Engine(Parts parts, EngineOptions options, std::shared_ptr<Waiting> waiting);
  ~Engine();

  // Connects to every task. Unavailable after options.start_timeout, naming who is missing.
  rpc::Task<void> start();
  // Lets go of everybody. Closures that run are left to their workers, their results to nobody.
  void stop();

  // ---- any thread ----
  ClosureQueue& queue() { return *queue_; }
  VariableRegistry& registry() { return *registry_; }  // after start()
  std::shared_ptr<const RegisteredFunction> register_function(
      std::shared_ptr<const ConcreteFunction> concrete, const std::string& name);
  std::size_t lane_count() const { return lane_count_; }  // of the whole cluster; after start()
  EngineStats stats() const;
  std::string status_json() const;  // as of at most 200 ms ago; before start() has ended, too
  // tasks that start() waits for, each with what is wrong, as of as long ago
  std::vector<std::string> missing() const;
  void log_waits();  // what it waits for, to the log; on the loop
  const EngineOptions& options() const { return options_; }
  // Has somebody asked that the program end? To ask is to say that it would.
  bool stop_requested() {
    looks_for_stop_ = true;
    return stop_requested_;
  }
  bool looks_for_stop() const { return looks_for_stop_; }
  // FailedPrecondition: the program never looked whether it is to end.
  void request_stop();

  // ---- the loop's ----
  void pump();  // sends what can be sent
  std::shared_ptr<const PerWorkerDataset> add_dataset(
      std::string name, std::vector<std::vector<std::byte>> descriptions, ElementSpec spec,
      bool shared);
  // One consistent cut; the name of the checkpoint. One at a time, later calls wait.
  rpc::Task<std::string> save(CheckpointPolicy policy, std::string metadata);
  // Variables (also those made later), step, dataset positions and, in the same session, closures
  // from a checkpoint. The queue must be idle. FailedPrecondition: another dtype or shape.
  rpc::Task<void> restore(std::string checkpoint, RestoreOptions options = {});
  // What the checkpoint that was restored last holds; empty: none was.
  SavedVariables restored_variables() const;
  // What that checkpoint does not hold, or not alike, begins anew, without a warning or an error.
  void expect_partial_restore();
  // Saves by itself from now on.
  void save_by(CheckpointPolicy policy, std::string metadata);
  void hold_folder(std::shared_ptr<const storage::FolderLock> lock);
  // One now, under that policy, for all who ask before it has begun; it does not end with them.
  //   Errors  FailedPrecondition: there is no policy. Those of save().
  kj::Promise<std::string> save_by_policy();

 private:
  struct Worker;
  struct Lane {
    Worker* worker = nullptr;
    std::uint32_t index = 0;  // in its worker
    std::size_t number = 0;   // in the cluster: which pipeline of a dataset is its own
    std::unique_ptr<LaneClient> client;
    std::uint64_t incarnation = 0;  // 0: it is lost, whatever it may still send
    std::uint64_t layout_version = 0;
    bool ready = false;
    std::shared_ptr<Closure> preparing;  // it is sent what this one needs
    std::vector<bool> functions;
    std::unordered_map<std::uint64_t, bool> pipelines;
    InFlight inflight;                             // sent, or about to be in this turn of the loop
    std::vector<std::shared_ptr<Closure>> outbox;  // the latter
    std::size_t calls = 0;                         // that wait there for results
    std::uint64_t answers = 0;                     // closures that this connection has answered
    // it came while pushes were held: it is sent nothing until they are released
    bool kept_out = false;
    bool due = false;  // among due_
    SendWindow window;
    std::unique_ptr<rpc::TaskGroup> tasks;
  };
  struct Worker {
    std::uint32_t index = 0;
    std::string address;
    std::string name;
    std::unique_ptr<WorkerControlClient> control;
    std::vector<std::unique_ptr<Lane>> lanes;
    std::uint64_t process = 0;  // the incarnation that its process told
    std::uint64_t served = 0;   // that of the process which was last ready for this session
    TimePoint lost_at{};
    bool ready = false;
    std::string trouble = "not yet connected";
    std::string status;  // its own JSON, polled
    TimePoint status_at{};
    LossLedger::Absence absence;  // until work goes through it again
  };
  struct Ps {
    std::uint32_t index = 0;
    std::string address;
    std::string name;
    std::unique_ptr<PsControlClient> control;
    std::vector<std::unique_ptr<ShardClient>> shards;
    std::uint64_t incarnation = 0;
    TimePoint lost_at{};
    bool ready = false, lost_for_good = false;
    std::uint64_t closures_below = 0;  // announced to all of its shards
    std::string trouble = "not yet connected";
    std::string status;
    TimePoint status_at{};
    LossLedger::Absence absence;
    // its process is new, or a restore has not ended: it must be rebuilt before it serves
    bool needs_rows = false;
    std::uint64_t served = 0;  // the process that became part of the session last
    // how often it became part of the session: a mark is of one of these times
    std::uint64_t attached = 0;
  };
  // to one endpoint, greeting included
  static constexpr Duration kConnectDeadline = std::chrono::seconds(5);
  static constexpr Duration kBackoffFirst = std::chrono::milliseconds(20),
                            kBackoffMax = std::chrono::milliseconds(500);
  // Who holds it talks to the shards about tables; others wait for `changed_`.
  class Busy {
   public:
    explicit Busy(Engine& engine) : engine_(engine) { engine_.layout_busy_ = true; }
    ~Busy() {
      engine_.layout_busy_ = false;
      engine_.changed();
    }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

   private:
    Engine& engine_;
  };

  // ---- dispatch ----
  void dispatch_queued();
  void dispatch_next(Lane& lane);
  bool may_go(const Closure& next);
  bool has_room(const Lane& lane) const;
  void send_dispatched();
  LaneMessage next_message(Lane& lane);
  void weigh(Lane& lane);
  void owe(Lane& lane);
  bool prepared(const Lane& lane, const Closure& closure) const;
  rpc::Task<void> prepare(Lane* lane, std::shared_ptr<Closure> closure);
  rpc::Task<void> send_preparations(Lane* lane, std::shared_ptr<Closure> closure);
  void dispatch(Lane& lane, std::shared_ptr<Closure> closure);
  rpc::Task<void> run_on(Lane* lane, LaneMessage message);
  void answered(Lane& lane, LaneReply reply);
  void succeeded(Lane& lane, const std::shared_ptr<Closure>& closure, LaneReply reply);
  void went_wrong(Lane& lane, const std::shared_ptr<Closure>& closure, std::exception_ptr error);
  void fail(Closure& closure, std::exception_ptr error);
  std::exception_ptr input_error(const ErrorParts& parts, const Lane& lane) const;
  rpc::Task<void> run_again_later(std::shared_ptr<Closure> closure);
  void spend_elements(const Closure& closure);
  void torn(Closure& closure);
  void not_torn(Closure& closure);
  void count_skipped(std::uint64_t pipeline, std::uint64_t skipped);
  void count_update(Lane& lane, const Closure& closure, const LaneReply& reply);

  // ---- workers ----
  rpc::Hello hello(std::uint32_t endpoint) const;
  template <typename Client, typename Member>
  rpc::Task<void> join(Client* client, Member* member, std::uint64_t process);
  rpc::Task<void> show_life();
  [[noreturn]] void give_way(const std::string& other);
  rpc::Task<void> connect_worker(Worker* worker);
  rpc::Task<void> worker_loop(Worker* worker);
  rpc::Task<void> configure_lanes(Worker* worker);
  rpc::Task<void> watch_worker(Worker* worker);
  rpc::Task<void> give_up_worker(Worker* worker);
  rpc::Task<void> fence_lost_lanes();
  rpc::Task<void> fence_lost_lanes_on(Ps* ps);
  rpc::Task<void> watch_for_no_workers();

  // ---- ps ----
  rpc::Task<void> connect_ps(Ps* ps);
  rpc::Task<void> ps_loop(Ps* ps);
  kj::Promise<rpc::Silence> silence_of(Ps* ps);
  rpc::Task<void> attach_in_time(Ps* ps);
  rpc::Task<void> give_up_in_silence(Ps* ps);
  rpc::Task<void> attach_ps(Ps* ps);
  void lose_ps(Ps& ps, const std::string& reason);
  void give_up_ps(Ps& ps, std::exception_ptr error);
  bool all_ps_ready() const;
  std::vector<std::uint64_t> times_attached() const;
  // of the ps that are there, in their order; good until the next wait
  std::vector<ShardClient*> all_shards() const;
  bool any_ps_given_up() const;
  void note_rebuilt(Ps& ps, std::uint64_t version, std::shared_ptr<const CheckpointView> source);
  void publish_losses();
  template <typename Member>
  rpc::Task<void> try_to(Member* member, rpc::Task<void> (Engine::*join)(Member*));
  rpc::Task<void> connect_everybody();
  template <typename Member>
  rpc::Task<void> dial_once(Member* member, rpc::Task<void> (Engine::*connect)(Member*));
  std::vector<std::string> not_connected() const;

  // ---- what shards know of closures ----
  struct Announced {
    std::uint64_t closures_below = 0, settled_below = 0;
  };
  bool announcement_due() const;
  Announced next_announcement();
  rpc::Task<void> announce_to(Ps* ps, Announced word);
  rpc::Task<void> announce_in_time(Ps* ps, Announced word);
  rpc::Task<void> announce_loop();

  // ---- layout ----
  void sync_layout();
  void synced(std::shared_ptr<const Layout> layout);
  rpc::Task<void> sync_layout_task();
  rpc::Task<void> configure_shards(Ps* ps, std::shared_ptr<const Layout> layout, VariableId first);
  rpc::Task<void> restore_shards(Ps* ps, std::shared_ptr<const Layout> layout, VariableId first,
                                 std::vector<std::shared_ptr<CheckpointView>> sources);
  rpc::Task<void> restore_new_variables(Ps* ps, std::shared_ptr<const Layout> layout);
  rpc::Task<void> rebuild_shards(Ps* ps, std::shared_ptr<const Layout> layout,
                                 std::shared_ptr<CheckpointView> newest);
  rpc::Task<void> restore_shard(ShardClient* shard, std::shared_ptr<CheckpointView> source,
                                std::vector<VariableId> wanted);

  // ---- checkpoints ----
  rpc::Task<std::string> save_one(CheckpointPolicy policy, std::string metadata);
  std::shared_ptr<const storage::FolderLock> lock_of(const std::string& folder) const;
  void goes_on_from(const CheckpointView& source);
  rpc::Task<void> save_shards(std::shared_ptr<Cut> cut, std::string folder);
  rpc::Task<void> save_shard(std::shared_ptr<Cut> cut, std::size_t i, ShardClient& shard,
                             std::string folder);
  void drop_marks(std::uint64_t mark);
  rpc::Task<void> restore_all(std::string checkpoint, RestoreOptions options);
  void verify_restorable(const Layout& layout) const;
  rpc::Task<void> hold_lanes();
  rpc::Task<void> hold_lane(Lane* lane);
  void release_lanes();
  rpc::Task<Cut> make_cut(std::uint64_t checkpoint);
  rpc::Task<bool> mark_shards(Cut* cut);
  bool all_applied_committed(const Cut& cut) const;
  rpc::Task<void> commit_checkpoint(std::shared_ptr<Cut> cut, std::string name,
                                    CheckpointPolicy policy, std::string metadata);
  void take_positions(Cut& cut);
  void save_if_due();
  rpc::Task<void> save_and_forget();
  rpc::Task<void> save_for_askers();
  rpc::Task<void> timed_saves();
  void restore_positions();

  // ---- who waits for what: engine_stuck.cc ----
  std::string queued_for(const Closure& closure) const;
  std::string doing_of(const ToldClosure& told) const;
  void see_lane(const Lane& lane, const std::vector<ToldClosure>& told,
                std::vector<ClosureSight>& out) const;
  std::vector<ClosureSight> see_closures();
  void look_for_stuck();

  rpc::Task<void> publish_status();
  void refresh_status();
  std::string make_status() const;
  rpc::Task<void> on_disk_thread(std::function<void()> work);
  void changed() { changed_.notify_all(); }
  double seconds_since(TimePoint then) const;
  double uptime() const { return seconds_since(born_); }

  Parts parts_;
  EngineOptions options_;
  std::unique_ptr<ClosureQueue> queue_;
  std::unique_ptr<VariableRegistry> registry_;
  std::uint64_t session_ = 0;
  TimePoint born_{};
  std::size_t lane_count_ = 0;
  std::vector<std::unique_ptr<Ps>> ps_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Lane*> lanes_;
  LeastLoaded free_;        // lanes that may be sent a closure, by their number
  std::vector<Lane*> due_;  // lanes that something is to be sent to at the end of pump()
  std::vector<Pipeline> pipeline_book_;
  std::vector<std::shared_ptr<const PerWorkerDataset>> datasets_;
  std::vector<std::uint64_t> skipped_rows_;  // beside pipeline_book_
  std::uint64_t next_incarnation_ = 1;
  std::uint64_t fences_ = 0;          // raised so far: who opens a shard must not miss one
  Announced announced_;               // the newest word
  std::uint64_t closures_below_ = 0;  // every ps knows of those
  std::uint64_t wanted_below_ = 0;    // above all that were sent, or are to be sent next
  rpc::Signal announce_due_;
  std::uint64_t synced_version_ = 0;
  std::shared_ptr<const Layout> synced_;
  bool resync_ = false;           // a ps has tables that others may lack
  bool layout_busy_ = false;      // a sync, an attach or a restore talks to the shards about tables
  std::size_t torn_ = 0;          // closures that some shards may have and others not
  bool checkpoint_busy_ = false;  // a save or a restore: one at a time
  bool holding_ = false;          // pushes are held on the lanes, or about to be
  // a cut is marked on the shards, or its rows are on their way to the disk
  bool writing_ = false;
  bool started_ = false;
  std::atomic<bool> pump_posted_{false};
  std::atomic<bool> looks_for_stop_{false}, stop_requested_{false};
  rpc::Signal changed_;

  std::int64_t global_step_ = 0;  // committed steps
  std::int64_t next_step_ = 0;    // given to updating closures as they first leave the queue
  std::uint64_t next_mark_ = 1;
  LossLedger losses_;
  // what the program restored: new variables take their rows from it
  std::shared_ptr<CheckpointView> restored_;
  // what a lost ps is rebuilt from: the newest checkpoint, or restored_
  std::shared_ptr<CheckpointView> newest_;
  // names that have their positions, or had none to have
  std::set<std::string> restored_datasets_;
  std::optional<CheckpointPolicy> policy_;
  std::string policy_metadata_;
  // for a checkpoint that has not begun
  std::vector<kj::Own<kj::PromiseFulfiller<std::string>>> askers_;
  std::int64_t saved_at_step_ = 0;
  std::vector<storage::Ancestor> ancestors_;  // of this session
  // on the folders that it saves to
  std::map<std::string, std::shared_ptr<const storage::FolderLock>> locks_;

  TimePoint saved_at_{};  // when the last automatic checkpoint began or ended

  mutable std::mutex shared_mutex_;  // guards the four below: read by any thread
  std::unordered_map<std::string, std::shared_ptr<const RegisteredFunction>> functions_;
  EngineStats stats_;
  std::string status_;
  std::vector<std::string> missing_;

  StuckWatch stuck_watch_;
  std::vector<StuckClosure> stuck_;

  std::shared_ptr<rpc::Mailbox> mailbox_;
  rpc::TaskGroup tasks_;  // last: cancelled first
};

}  // namespace cairn
