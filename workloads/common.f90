! common [STEPS]        (Fortran, OpenMP; OMP_NUM_THREADS; default 2000 steps)
!
! Three arrays of 256 x 256 doubles (512 KiB, 128 pages each), one of each kind that
! Fortran has for data seen by several procedures; thread i owns a block of columns
! of each:
!   pressure    in the COMMON block /state/, with `velocity` (same shape) behind it
!   density     variable of the module `fields`
!   energy      allocatable, allocated by main, first touched by the owners
!
! Expected, with N threads, per step 256*256 times: 1 read of density, pressure and
! energy each, 1 write of velocity and energy each:
!   pressure    written once by thread 0 at the start, then read by its owners only
!   velocity    first touched and written by the owners, never read (but once at the end)
!   density     written once by thread 0 at the start, then read by its owners only
!   energy      first touched by the owners, then read and written by them only
!   names       pressure and velocity (or their block `state_`), density in module
!               fields (`__fields_MOD_density` without debug information), energy
!   matrix      nearly 0: only libgomp's barriers
module fields
  implicit none
  integer, parameter :: n = 256
  double precision :: density(n, n)
end module fields

subroutine advance(energy, low, high)
  use fields
  implicit none
  double precision, intent(inout) :: energy(n, n)
  integer, intent(in) :: low, high
  double precision :: pressure, velocity
  common /state/ pressure(n, n), velocity(n, n)
  integer :: r, c
  do c = low, high
    do r = 1, n
      velocity(r, c) = pressure(r, c) * 0.5d0 + density(r, c)
      energy(r, c) = energy(r, c) + 1.0d0
    end do
  end do
end subroutine advance

program common
  use fields
  use omp_lib
  implicit none
  double precision :: pressure, velocity
  common /state/ pressure(n, n), velocity(n, n)
  double precision, allocatable :: energy(:, :)
  integer :: steps, step, me, threads, low, high
  character(len=16) :: text
  steps = 2000
  if (command_argument_count() > 0) then
    call get_command_argument(1, text)
    read (text, *) steps
  end if
  allocate (energy(n, n))
  pressure = 2.0d0
  density = 3.0d0
  !$omp parallel private(me, threads, low, high, step)
  me = omp_get_thread_num()
  threads = omp_get_num_threads()
  low = n * me / threads + 1
  high = n * (me + 1) / threads
  energy(:, low:high) = 0.0d0
  do step = 1, steps
    call advance(energy, low, high)
    !$omp barrier
  end do
  !$omp end parallel
  if (all(energy == dble(steps)) .and. all(velocity == 4.0d0)) then
    print '(a)', 'common: correct'
  else
    print '(a)', 'common: WRONG'
    stop 1
  end if
end program common
