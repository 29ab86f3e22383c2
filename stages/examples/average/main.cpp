#include "average.hpp"

int main(int argc, char** argv) { return carousel::stage_main<average_stage>(argc, argv); }
