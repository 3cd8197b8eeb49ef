// Stands for HIP's runtime header when migrated kernels run in the simulator.
#pragma once
#include "../device_language.h"
