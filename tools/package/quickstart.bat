@echo off
rem Makes RNA molecules, trains a small model on them, and opens a page with its curves; all in runs\quickstart. A second call goes on.
rem   quickstart.bat [OPTION OF cleat train...]      for example --device cpu
setlocal
if not exist "%~dp0cleat.exe" echo unpack the whole archive first& pause & exit /b 1
set "PATH=%~dp0;%PATH%"
pushd "%~dp0"
if not exist runs\quickstart md runs\quickstart
cd runs\quickstart
if exist data goto train
echo == data
if exist part rmdir /s /q part
cleat data make rna --out part --count 1500
if not %errorlevel%==0 goto failed
ren part data
:train
set resume=
if exist run\last set resume=--resume
echo == training; after Ctrl-C, start this file again
cleat train rna_small --set data.path=data --out run %resume% %*
if not %errorlevel%==0 goto failed
echo == held-out molecules
cleat --log warning eval --checkpoint run --split test
if not %errorlevel%==0 goto failed
cleat --log warning report run
if not %errorlevel%==0 goto failed
start "" run\report.html
pause
exit /b
:failed
echo.
echo quickstart: it failed, see above; .\cleat doctor, in a terminal in this folder, says what a card or its driver lacks
pause
exit /b 1
