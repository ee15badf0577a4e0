#include "nn/base/training_scope.h"

namespace cairn::nn {
namespace {

thread_local bool training_now = false;

}  // namespace

TrainingScope::TrainingScope(bool training) : before_(training_now) { training_now = training; }
TrainingScope::~TrainingScope() { training_now = before_; }

bool is_training() { return training_now; }

}  // namespace cairn::nn
