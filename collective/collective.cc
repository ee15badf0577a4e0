#include "collective/collective.h"

namespace cairn {

Collective::~Collective() = default;

}  // namespace cairn
